"""Records that programs keep beside their sessions: prompt histories and terminals."""
