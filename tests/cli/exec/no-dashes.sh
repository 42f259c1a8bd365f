# Without `--` the first word that is no option starts the command, and its own options stay its own.
"$PX" exec echo -n one --two
