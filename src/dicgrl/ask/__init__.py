"""Asking a learner: answers, scores, neighbours, explanations, exports."""
