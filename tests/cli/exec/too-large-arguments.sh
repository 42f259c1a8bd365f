# The kernel's bound is a quarter of the stack limit, for words and variables together.
block=$(head -c 100000 /dev/zero | tr '\0' a)
for ((i = 0; i < 30; i++)); do
    printf 'V%d=%s\n' $i "$block"
done >"$TMP/env"
split -l 9 "$TMP/env" "$TMP/part."      # px reads a file of up to a megabyte
files=()
for part in "$TMP"/part.*; do
    files+=(--env-file "$part")
done
try "$PX" exec "${files[@]}" -- true
