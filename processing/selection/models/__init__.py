"""Model files of decision trees, which lines may use: CatBoost, XGBoost and LightGBM (docs/formats/tree-models.md).

model_file                                    reads a file, and names what is wrong with it
catboost_file, xgboost_file, lightgbm_file    the formats of the libraries
ensemble                                      the trees of all of them as one table, its checks and its evaluation;
                                              trees.cuh evaluates it in kernels
"""
