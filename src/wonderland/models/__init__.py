"""Whole models, each readable from top to bottom."""

from .alexnet import AlexNet
from .autoencoder import Autoencoder, BinaryAutoencoder, DenoisingAutoencoder, LinearAutoencoder, masking, mirror
from .baselines import MajorityClassifier, MeanRegressor
from .causal_convnet import CausalBlock, CausalConvNet, ConvLanguageModel
from .causal_sequential import CausalSequential
from .classifier import Classifier
from .cnn import CNN
from .conv_autoencoder import ConvAutoencoder
from .conv_classifier import ConvClassifier1d, ConvClassifier3d
from .convex import ConvergenceWarning
from .convnext import ConvNeXt, ConvNeXtBlock, convnext_tiny
from .corpus import bag_of_words, context_windows, skip_gram_pairs, word_counts
from .features import Pipeline, PolynomialFeatures, extract_features
from .feed_forward_graph import CycleError, FeedForwardGraph, layering
from .gaussian_mixture import GaussianMixture
from .glm import GLM, log_normal_cdf, normal_cdf, probit
from .heads import Head, make_head
from .heteroscedastic import HeteroscedasticRegression
from .image_classifier import ImageClassifier
from .inner_product_search import MIPSIndex
from .inspection import get_activations, show_feature_maps, show_filters
from .kmeans import KMeans
from .lasso import ElasticNet, Lasso
from .least_squares import (
    IllConditionedWarning,
    LinearRegression,
    Ridge,
    ls_dual_weights,
    ls_gd,
    ls_loss,
    ls_solve,
    ridge_solve,
)
from .lenet import LeNet
from .lesions import Ablation, ablate, drop_block, residual_blocks, residual_paths
from .linear_model import LinearModel, add_bias_column, apply_linear, init_linear, linear_gradients, linear_model
from .logistic import BinaryLogisticRegression, LogisticRegression, SoftmaxRegression, as_softmax
from .mlp import MLP, RectifierNet, width_for_budget
from .nearest import KNeighborsClassifier, KNeighborsRegressor, LookupModel
from .neighbors import nearest_neighbors, retrieve
from .neural_ode import Autonomous, NeuralODE, ODEFunc
from .pca import PCA
from .perceptron import Perceptron, is_linearly_separable
from .pretraining import fit_head
from .resnet import ResNet, cifar_resnet, resnet18, resnet34, resnet50, small_resnet
from .siamese import Siamese, n_way_accuracy, one_shot_predict
from .task import Task, TaskWarning
from .text_cnn import KimCNN, TextCNN
from .tsne import TSNE, conditional_affinities, joint_affinities, tsne_force, tsne_gradient, tsne_loss
from .unet import UNet
from .universal_approximation import (
    bin_function,
    neurons_needed,
    relu_interpolant,
    step_neuron,
    universal_approx,
    universal_approx_1d,
)
from .vgg import VGG, vgg
from .word_vectors import CBOW, SkipGram

__all__ = [
    # linear models
    "LinearModel",
    "LinearRegression",
    "Ridge",
    "Lasso",
    "ElasticNet",
    "HeteroscedasticRegression",
    "GLM",
    "LogisticRegression",
    "SoftmaxRegression",
    "BinaryLogisticRegression",
    "Perceptron",
    "as_softmax",
    "is_linearly_separable",
    "linear_model",
    "add_bias_column",
    "ls_loss",
    "ls_solve",
    "ls_gd",
    "ls_dual_weights",
    "ridge_solve",
    "init_linear",
    "apply_linear",
    "linear_gradients",
    "probit",
    "normal_cdf",
    "log_normal_cdf",
    "ConvergenceWarning",
    "IllConditionedWarning",
    # models that remember, and those that know nothing
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "LookupModel",
    "MajorityClassifier",
    "MeanRegressor",
    # multilayer perceptrons
    "MLP",
    "RectifierNet",
    "width_for_budget",
    "FeedForwardGraph",
    "layering",
    "CycleError",
    "make_head",
    "Head",
    "universal_approx_1d",
    "universal_approx",
    "relu_interpolant",
    "bin_function",
    "step_neuron",
    "neurons_needed",
    # images
    "ImageClassifier",
    "CNN",
    "LeNet",
    "AlexNet",
    "VGG",
    "vgg",
    "ResNet",
    "resnet18",
    "resnet34",
    "resnet50",
    "cifar_resnet",
    "small_resnet",
    "ConvNeXt",
    "ConvNeXtBlock",
    "convnext_tiny",
    "ConvAutoencoder",
    "UNet",
    "get_activations",
    "show_filters",
    "show_feature_maps",
    "drop_block",
    "ablate",
    "Ablation",
    "residual_blocks",
    "residual_paths",
    # around models
    "Classifier",
    "Task",
    "TaskWarning",
    "Pipeline",
    "PolynomialFeatures",
    "extract_features",
    # without labels
    "KMeans",
    "GaussianMixture",
    "PCA",
    "TSNE",
    "conditional_affinities",
    "joint_affinities",
    "tsne_force",
    "tsne_gradient",
    "tsne_loss",
    "Autoencoder",
    "LinearAutoencoder",
    "DenoisingAutoencoder",
    "BinaryAutoencoder",
    "masking",
    "mirror",
    "fit_head",
    # words, neighbours and very many classes
    "CBOW",
    "SkipGram",
    "context_windows",
    "skip_gram_pairs",
    "word_counts",
    "bag_of_words",
    "nearest_neighbors",
    "retrieve",
    "MIPSIndex",
    "Siamese",
    "one_shot_predict",
    "n_way_accuracy",
    # sequences, texts, videos
    "CausalBlock",
    "CausalConvNet",
    "CausalSequential",
    "ConvLanguageModel",
    "TextCNN",
    "KimCNN",
    "ConvClassifier1d",
    "ConvClassifier3d",
    # differential equations
    "NeuralODE",
    "ODEFunc",
    "Autonomous",
]
