# gc keeps what an image needs, and says before what it does; clean takes images without a name.
need jq
export PX_HOME=$TMP/home
mkdir -m 700 "$PX_HOME"
"$PX" sandbox list
blobs=$PX_HOME/store/blobs/sha256
id() { printf '%s' "$1" | sha256sum | cut -d' ' -f1; }
put() { printf '%s' "$1" >"$blobs/$(id "$1")"; }
record() {          # record KIND NAME BLOB
    mkdir -m 700 "$PX_HOME/sandbox/$1/$(id "$2")"
    echo "{\"refs\":{\"blobs\":[\"$(id "$3")\"],\"trees\":[]}}" >"$PX_HOME/sandbox/$1/$(id "$2")/manifest.json"
}
put one
put twofold
put 'three of them'
record images a one
record bases b twofold
printf '{"id":"%s","kind":"base","name":"kept"}' "$(id b)" >"$PX_HOME/store/names/$(id base:kept)"
"$PX" sandbox list
"$PX" --json sandbox gc --dry-run | jq -S 'del(.dry_run)' >would
"$PX" sandbox gc --dry-run
"$PX" --json sandbox gc | jq -S 'del(.dry_run)' >did
diff would did && echo 'the same list'
"$PX" sandbox clean --min 2>/dev/null || echo refused
"$PX" sandbox gc --max-size 9 --min-age 1h | tail -n 1
"$PX" sandbox gc --max-size 9 | tail -n 1
"$PX" sandbox list
"$PX" --json sandbox clean
"$PX" sandbox list
ls "$blobs" "$PX_HOME/store/trash" "$PX_HOME/store/tmp" | grep -c '^[0-9a-f]'
