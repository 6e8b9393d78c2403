"""The command line, `discorpora`."""
