"""Explain who changes and why: segments, scorecards, concepts and reasons for one person."""

from commod._reporting.explain.decisions import make_card
from commod._reporting.explain.explanation import Explanation, explain
from commod._reporting.explain.person import Alternative, Contribution, Person
from commod._reporting.explain.segments import SegmentFinder, find_segments
