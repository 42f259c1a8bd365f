# A megabyte of arguments works, and almost all that the kernel takes.
words() { local i; for ((i = 0; i < $1; i++)); do printf '%s\n' "$block"; done; }
block=$(head -c 100000 /dev/zero | tr '\0' a)
mapfile -t some < <(words 10)
"$PX" exec -- sh -c 'for w; do printf %s "$w"; done | wc -c' sh "${some[@]}"
mapfile -t some < <(words 19)
try "$PX" exec -- true "${some[@]}"
