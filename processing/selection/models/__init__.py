"""Model files, which lines may use: decision trees of CatBoost, XGBoost, LightGBM and ONNX
(docs/formats/tree-models.md), and dense networks (docs/formats/network-models.md).

model_file                                    reads a file, and names what is wrong with it
catboost_file, xgboost_file, lightgbm_file    the formats of the libraries of trees
onnx_trees                                    trees of ONNX files, which networks.onnx_file opens
ensemble                                      the trees of all of them as one table, its checks and its evaluation;
                                              trees.cuh evaluates it in kernels
networks                                      the same for networks
table                                         what the tables of trees and networks share
"""
