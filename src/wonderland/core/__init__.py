"""What a value is: tensors, cells, dtypes, trees, errors, context;
what a primitive is, and how it is carried out and differentiated.
"""

__version__ = "0.1.0"
