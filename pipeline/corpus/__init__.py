"""Make labelled transcripts: scripted agents, honest ones and others, at work on real Tasks."""
