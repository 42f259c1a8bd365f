# What each step cost, on stderr; stdout stays the command's.
"$PX" exec --timings -- echo hello 2>"$TMP/err"
grep -cE '^ +(plan|clone-to-exec|run) +[0-9.]+$' "$TMP/err"
