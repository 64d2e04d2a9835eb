"""The generated kernel: lines, histograms and selected candidates, written as C++."""
