"""Networks: perceptrons, convolutional networks, autoencoders, neural differential equations."""
