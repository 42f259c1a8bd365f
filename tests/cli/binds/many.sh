dirs=()
for ((i = 0; i < 60; i++)); do
    mkdir "$TMP/d$i"
    echo $i >"$TMP/d$i/f"
    dirs+=(-v "$TMP/d$i:/many/d$i:ro")
done
"$PX" exec "${dirs[@]}" -c 'cat /many/*/f | wc -l'
dirs=()
for ((i = 0; i < 300; i++)); do
    dirs+=(-v "/etc:/many/d$i:ro")
done
says "$PX" exec "${dirs[@]}" -- true
