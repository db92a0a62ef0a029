"""The numbers that speed depends on, with their units, and what to run when one of them is changed.

They were measured on machines with AVX2 and with AVX-512. None changes what is computed, but some (where sums
are cut) change roundings. `python -m benchmarks operations` times single operations, `python -m benchmarks steps` whole
training steps, `python -m benchmarks convolutions` convolutions of many shapes; the names at the right are theirs.
"""

from __future__ import annotations

# --- what things take, roughly
CYCLES = 2000  # of a product at its best, in a microsecond                                      steps
NEAR_BYTES = 40_000  # that the caches give in a microsecond
FAR_BYTES = 10_000  # that memory gives in a microsecond                                         decoding
COPIED_BYTES = 10_000  # that packing moves in a microsecond                                     matmul_transposed
STORING, READING = 40, 13  # to write a value and read it again, to read one; in additions       gelu, layer_norm_grad
TOUCH = 10  # to read or write an element in a kernel, in additions                              elementwise

# --- how work is cut into chunks; by the problem alone, so that results do not depend on threads
SHORT = 20  # microseconds of a step that is not worth sharing                                   mlp_tiny, matmul_64
LONG_READ = 100  # microseconds of keys and values that a few queries share out in parts          decoding
GRAIN = 1 << 18  # additions in a chunk of a kernel: some ten microseconds                       elementwise, softmax
MOST_CHUNKS = 32  # of a step                                                                    elementwise
CONVOLVED = 20_000_000  # operations in a chunk of a convolution: a fifth of a millisecond       conv_3x3, cnn
TRANSFORMED = 1 << 11  # tiles times channels that a chunk transforms for a convolution               inference
FILTERED = 10_000_000  # operations in a chunk of the gradient of a filter                       conv_3x3_grad
FILTER_PARTS = 1 << 21  # bytes of all partial sums of that gradient                             conv2d_3x3_256
RECTANGLE = 1 << 16  # elements of a product that a chunk computes                               matmul_512
LONG_ROW = 1 << 15  # elements of a single row that is reduced in pieces                         sum_all

# --- how much is fused
HEAVIEST = 120  # the weight of an expression, in additions; beyond, registers run out           gelu, lstm
MOST_ITEMS = 16  # expressions that one step computes                                            lstm, layer_norm_grad
OPEN_CONTRACTIONS = 3  # that wait for work on their results                                     gpt
PATIENCE = 8  # steps that an open kernel lets pass while it waits for more                      cnn, resnet
EASY = 16  # the weight of an expression that a convolution computes while it reads              cnn
HEAVY = 8  # the weight from which a gathered or sorted expression is computed beforehand        gcn, sort
WINDOW = 32  # positions in a window that are written out; NumPy does larger ones                cnn
INLINE = 160  # instructions of an epilogue that are repeated for each register of a block       mlp, gpt

# --- what fits where, as a share of a cache of the processor
PANEL = 0.7  # of the first cache: a panel of y                                                  matmul_512
FAR_KEYS = 0.25  # of the second cache: keys and values that are worked on together             attention_grad
SPREAD = 0.25  # of its places: on so many rows of values fall that are read where they lie        attention

# --- what fits where, in bytes
ROW_BYTES = 1 << 15  # of a kernel's values, kept from one phase to the next                     softmax, layer_norm
LARGE = 1 << 18  # of a matrix that is read once, row by row                                     decoding
STREAMED = 1 << 14  # of sums that wait while such a matrix is read                               decoding
STREAMED_CHUNK = 1 << 19  # of such a matrix that a chunk reads                                  decoding
FAR_ROWS = 2048  # from which rows of a factor are on pages of their own                           gcn_cora
FAR_FACTOR = 1 << 22  # of such a factor that is read along its rows, in parts of the sum        gcn_cora, gat_cora
GATHERED = 1 << 19  # of x that are brought together                                             matmul_transposed
PATCH = 160 * 1024  # of a patch of a convolution                                                conv_3x3, conv2d_stem
STACK = 512 * 1024  # that may lie on the stack, as a patch beside the filter in the second cache   conv2d_3x3_256
NEAR_FILTER = 1 << 20  # of a filter at its points, beside such tiles                                   cnn, resnet
TILED = 1 << 18  # of transformed tiles that are multiplied together, in the second cache             conv2d_3x3_64
COLUMNS = (
    1 << 25
)  # of products that are added where they overlap, in the last cache               conv2d_stem, conv1d_wave
FILTER_ROWS = 42 * 1024  # of what the gradient of a filter reads again and again, first cache   conv_3x3_grad
FILTER_PLACES = 96  # places; a tile of so many is not made smaller                              conv_3x3_grad
KEYS = 1 << 16  # of them in a forward pass that needs several tiles                              attention
QUERY_SUMS = 1 << 16  # of sums that wait for the next tile of keys                              attention
NEAR = 1 << 18  # from which rows are gathered without asking for them before                     sparse
LOCAL_NUMBERS = 1 << 17  # of the numbers of one transform, a vector of signals; there are two such pieces   fourier
COPIED_STATE = 1 << 20  # of state that is copied to its place, rather than given new memory          elementwise
ASKED = 1 << 14  # of keys and values of all heads that are asked for before they are read             decoding
FEW_STATES = 1 << 15  # of queries and sums of values of heads that a chunk takes together         decoding
WORTH_KEEPING = 1 << 12  # elements made of parameters alone, to keep them from call to call             inference
KEPT_RESULT = 1 << 16  # of a result whose memory is used again when nobody holds it             elementwise

# --- how many go together
LEAST_TILES = 24  # that are multiplied together, however large they are                             conv2d_3x3_256
FEATURES = 1024  # of keys and values of attention together; tiles of more leave too little of the caches   attention
COPIED_ROWS = 20  # of x for which each panel of y is brought together, if its rows lie badly        mlp, lstm
FETCHED_ROWS = 8  # of such a factor that are read ahead at the same time                        products
FETCHED_TERMS = 64  # of a sum during which the factor of the next block is asked for                  products
FAR_PARTS = 4  # of the sum of a product with such a factor                                      gcn_cora, gat_cora
FEW_ROWS = 4  # of a product that takes as long as reading its other factor                      decoding
FEW_QUANTIZED = 8  # of a product that reads a matrix of few bits as it is                       decoding
READ_AGAIN = 8  # blocks of rows for which such a matrix is widened in registers, each time it is read   decoding
BYTE_COLUMNS = 4  # whose sums of products of int8 are made together, for a block of rows         decoding
STREAMS = 8  # rows of that factor that are read at a time, if there is one row                  decoding
STRETCHES = 4  # of a matrix that is stored by rows, which are read at the same time                  decoding
LEAST_ROWS = 64  # of that factor in a chunk                                                     decoding
FEW_KEYS = 128  # whose weights a few queries keep at a time                                      decoding
VALUE_VECTORS = 8  # of the sums of values of a few queries, in registers                        decoding
SCORE_ROWS = 2  # of scores                                                                      attention
QUERY_GROUPS = 2  # of queries, in the gradients of attention                                    attention_grad
TURNED_ROWS = 8  # signals, the ways of a first cache: lines a page apart push each other out         fourier
FEW_NUMBERS = 64  # from which a transform of few signals is made of two                          fourier
FEW_MATRICES = 8  # below, gradients of queries and of keys are computed apart                   attention_grad
BLOCK_VECTORS = 3  # of a row of a tile that stay in registers                                   attention
FUNCTION = 10  # additions; what costs so much has operations that wait for each other               gelu
INTERLEAVED = 4  # vectors of such functions that are computed together                            gelu, elementwise
PAIRED = 8  # coefficients from which on a polynomial is computed in two chains                        gelu
TURNED = 1 << 13  # elements, from which squares save more than it takes to compile them             start
BAND = 128  # columns of squares that are turned one below the other, in the first cache     transpose, fourier
SUMMED_ROWS = (
    4  # that are added to sums on the side together                                      sum_columns, variance
)
WAITING = 16  # operations of a loop below which a sum waits for its last addition                 sum_rows, softmax
RUNNING_ROWS = 4  # of which running sums are made at once                                       cumulative_sum
SEARCHED = 8  # values that are looked for at once in a sorted row                               sort
NETWORK = 16  # the longest row that a sorting network sorts                                     sort
SEGMENT_VECTORS = 8  # of features of a line that are summed at once, in registers               sparse
AHEAD = 16  # entries of which rows are asked for before they are read                            sparse
SEGMENTS_UNROLLED = 32  # vectors of features that are written out                               sparse
UNROLLED = 8  # vectors of a row that are scattered without a loop                               gcn

# --- how exact sums are, see text/sums.py
LONGEST = 1024  # terms that an accumulator takes; so many lose no more than a product of a library   sum_all, variance
PART = 128  # terms of a part of a longer sum: the parts cost nothing beside so many additions   sum_all
MANY_UPDATES = 1 << 15  # of one place; the sum of more is made in float64                       gcn

# --- how long compiling takes, see benchmarks/start.py
STEADY = 256  # calls of one size in a row, after which it gets a program of its own                first_calls
COMPARED = 1024  # buffers that are placed by comparing all pairs; of more, the smallest are placed in a simpler way
PAIRS = 1024  # pieces of a tensor that are compared one by one
