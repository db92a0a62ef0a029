"""Models from before deep networks: linear ones, neighbours, mixtures, k-means, PCA, t-SNE."""
