# One line with -q, wherever the options stand; no colour unless on a terminal; a word too many is refused.
"$PX" doctor -q >a || true
"$PX" -q doctor >b || true
wc -l <a
cmp a b && echo same
sed 's/:.*//' a
"$PX" doctor | grep -c "$(printf '\033')" || true
says "$PX" doctor everything
"$PX" doctor --help | head -n 1
