"""Dense networks of model files, which lines may use (docs/formats/network-models.md).

onnx_file         ONNX files: networks, such as those of scikit-learn and PyTorch, and trees
protobuf          the encoding of ONNX files
monotone_file     monotone Lipschitz networks in JSON, and the check of what the file claims
network           all of them as one table, its steps and its checks; network.cuh evaluates it in kernels
"""
