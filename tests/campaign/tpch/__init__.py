"""The 22 queries of TPC-H as views, over tables that change."""
