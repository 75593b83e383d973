"""Single values: canonical form, text, intervals, VARIANTs."""
