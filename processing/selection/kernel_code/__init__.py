"""The generated kernel: lines, histograms and what the lines selected, written as C++."""
