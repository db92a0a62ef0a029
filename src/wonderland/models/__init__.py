"""Whole models, each readable from top to bottom."""

from .autoencoder import Autoencoder, BinaryAutoencoder, DenoisingAutoencoder, LinearAutoencoder, masking, mirror
from .baselines import MajorityClassifier, MeanRegressor
from .classifier import Classifier
from .convex import ConvergenceWarning
from .corpus import bag_of_words, context_windows, skip_gram_pairs, word_counts
from .features import Pipeline, PolynomialFeatures, extract_features
from .feed_forward_graph import CycleError, FeedForwardGraph, layering
from .gaussian_mixture import GaussianMixture
from .glm import GLM, log_normal_cdf, normal_cdf, probit
from .heads import Head, make_head
from .heteroscedastic import HeteroscedasticRegression
from .inner_product_search import MIPSIndex
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
from .linear_model import LinearModel, add_bias_column, apply_linear, init_linear, linear_gradients, linear_model
from .logistic import BinaryLogisticRegression, LogisticRegression, SoftmaxRegression, as_softmax
from .mlp import MLP, RectifierNet, width_for_budget
from .nearest import KNeighborsClassifier, KNeighborsRegressor, LookupModel
from .neighbors import nearest_neighbors, retrieve
from .pca import PCA
from .perceptron import Perceptron, is_linearly_separable
from .pretraining import fit_head
from .siamese import Siamese, n_way_accuracy, one_shot_predict
from .task import Task, TaskWarning
from .tsne import TSNE, conditional_affinities, joint_affinities, tsne_force, tsne_gradient, tsne_loss
from .universal_approximation import (
    bin_function,
    neurons_needed,
    relu_interpolant,
    step_neuron,
    universal_approx,
    universal_approx_1d,
)
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
]
