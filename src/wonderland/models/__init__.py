"""Whole models, each readable from top to bottom."""

from ..core.naming import offer as _offer
from .classical.baselines import MajorityClassifier, MeanRegressor
from .classical.classifier import Classifier
from .classical.convex import ConvergenceWarning
from .classical.corpus import bag_of_words, context_windows, skip_gram_pairs, word_counts
from .classical.features import Pipeline, PolynomialFeatures, extract_features
from .classical.gaussian_mixture import GaussianMixture
from .classical.glm import GLM, log_normal_cdf, normal_cdf, probit
from .classical.heteroscedastic import HeteroscedasticRegression
from .classical.inner_product_search import MIPSIndex
from .classical.kmeans import KMeans
from .classical.lasso import ElasticNet, Lasso
from .classical.least_squares import (
    IllConditionedWarning,
    LinearRegression,
    Ridge,
    ls_dual_weights,
    ls_gd,
    ls_loss,
    ls_solve,
    ridge_solve,
)
from .classical.linear_model import (
    LinearModel,
    add_bias_column,
    apply_linear,
    init_linear,
    linear_gradients,
    linear_model,
)
from .classical.logistic import BinaryLogisticRegression, LogisticRegression, SoftmaxRegression, as_softmax
from .classical.nearest import KNeighborsClassifier, KNeighborsRegressor, LookupModel
from .classical.neighbors import nearest_neighbors, retrieve
from .classical.pca import PCA
from .classical.perceptron import Perceptron, is_linearly_separable
from .classical.spectral_clustering import spectral_clustering
from .classical.task import Task, TaskWarning
from .classical.tsne import TSNE, conditional_affinities, joint_affinities, tsne_force, tsne_gradient, tsne_loss
from .graphs import *  # noqa: F403 - it has an exact `__all__`
from .networks.alexnet import AlexNet
from .networks.autoencoder import (
    Autoencoder,
    BinaryAutoencoder,
    DenoisingAutoencoder,
    LinearAutoencoder,
    masking,
    mirror,
)
from .networks.causal_convnet import CausalBlock, CausalConvNet, ConvLanguageModel
from .networks.causal_sequential import CausalSequential
from .networks.cnn import CNN
from .networks.conv_autoencoder import ConvAutoencoder
from .networks.conv_classifier import ConvClassifier1d, ConvClassifier3d
from .networks.convnext import ConvNeXt, ConvNeXtBlock, convnext_tiny
from .networks.feed_forward_graph import CycleError, FeedForwardGraph, layering
from .networks.heads import Head, make_head
from .networks.image_classifier import ImageClassifier
from .networks.inspection import get_activations, show_feature_maps, show_filters
from .networks.lenet import LeNet
from .networks.lesions import Ablation, ablate, drop_block, residual_blocks, residual_paths
from .networks.mlp import MLP, RectifierNet, width_for_budget
from .networks.mlp_mixer import MLPMixer
from .networks.neural_ode import Autonomous, NeuralODE, ODEFunc
from .networks.pretraining import fit_head
from .networks.resnet import ResNet, cifar_resnet, resnet18, resnet34, resnet50, small_resnet
from .networks.siamese import Siamese, n_way_accuracy, one_shot_predict
from .networks.sound_cnn import SoundCNN
from .networks.tabular import Tabular
from .networks.text_cnn import KimCNN, TextCNN
from .networks.unet import UNet
from .networks.universal_approximation import (
    bin_function,
    neurons_needed,
    relu_interpolant,
    step_neuron,
    universal_approx,
    universal_approx_1d,
)
from .networks.vgg import VGG, vgg
from .networks.word_vectors import CBOW, SkipGram
from .pretrained.images import *  # noqa: F403 - it has an exact `__all__`
from .pretrained.loading import *  # noqa: F403 - it has an exact `__all__`
from .pretrained.saving import *  # noqa: F403 - it has an exact `__all__`
from .recurrent import *  # noqa: F403 - it has an exact `__all__`
from .transformers import *  # noqa: F403 - it has an exact `__all__`

_offer(globals())
