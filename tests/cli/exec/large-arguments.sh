# A megabyte of arguments works; more than the kernel takes is a clear error, and one word longer than it takes too.
words() { local i; for ((i = 0; i < $1; i++)); do printf '%s\n' "$block"; done; }
block=$(head -c 100000 /dev/zero | tr '\0' a)
mapfile -t some < <(words 10)
"$PX" exec -- sh -c 'for w; do printf %s "$w"; done | wc -c' sh "${some[@]}"
mapfile -t some < <(words 19)
try "$PX" exec -e "BIG1=$block" -e "BIG2=$block" -e "BIG3=$block" -- true "${some[@]}" 2>"$TMP/err"
