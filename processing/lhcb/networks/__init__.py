"""Networks with one hidden layer: weights, their files, and their response.

one_hidden_layer    the weights and their file; one_hidden_layer.cuh evaluates one track, one_hidden_layer_cpu.h
                    several tracks in the lanes of vector registers
"""
