"""Transforms of images and labels, for a loader or by hand: types, sizes, flips, warps, colours, noise, RandAugment."""

from .blurring import GaussianBlur
from .colors import Brightness, ColorJitter, Contrast, Grayscale, Hue, RandomGrayscale, Saturation
from .cropping import CenterCrop, Pad, RandomCrop
from .erasing import Cutout, RandomErasing
from .flips import RandomHorizontalFlip, RandomVerticalFlip
from .preview import image_svg, png_bytes, preview, preview_grid
from .randaugment import RandAugment
from .resizing import RandomResizedCrop, Resize
from .safety import TASKS, Unsafe, check_label_safety
from .transform import Compose, Transform
from .values import GaussianNoise, Normalize, OneHot, ToFloat
from .warping import RandomAffine, RandomRotation, RandomTranslation, RandomZoom

# fmt: off
__all__ = [
    "Transform", "Compose", "ToFloat", "Normalize", "OneHot", "Pad", "CenterCrop", "RandomCrop", "Resize",
    "RandomResizedCrop", "RandomHorizontalFlip", "RandomVerticalFlip", "RandomRotation", "RandomTranslation",
    "RandomZoom", "RandomAffine", "Brightness", "Contrast", "Saturation", "Hue", "ColorJitter", "Grayscale",
    "RandomGrayscale", "GaussianNoise", "GaussianBlur", "Cutout", "RandomErasing", "RandAugment", "TASKS", "Unsafe",
    "check_label_safety", "preview", "preview_grid", "image_svg", "png_bytes",
]
