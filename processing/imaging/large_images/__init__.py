"""Large images: the rows of an image are computed by several blocks of a GPU, or threads of a CPU."""
