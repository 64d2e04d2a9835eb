"""Other schedules of the tracklet constructor. All have the results of tpc_construct_tracklets, bit by bit."""
