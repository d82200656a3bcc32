"""From deltas of leaves to deltas of views: the view DAG, the plan of a refresh, and its executor."""
