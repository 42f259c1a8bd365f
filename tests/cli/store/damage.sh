# What is damaged is found and set aside; what cannot be read stops gc, and nothing is removed.
export PX_HOME=$TMP/home
mkdir -m 700 "$PX_HOME"
"$PX" sandbox list
blobs=$PX_HOME/store/blobs/sha256
put() { printf '%s' "$1" >"$blobs/$(printf '%s' "$1" | sha256sum | cut -d' ' -f1)"; }
id() { printf '%s' "$1" | sha256sum | cut -d' ' -f1; }
put one
put two
record=$PX_HOME/sandbox/images/$(id record)
mkdir -m 700 "$record"
echo "{\"refs\":{\"blobs\":[\"$(id one)\"],\"trees\":[]}}" >"$record/manifest.json"
"$PX" sandbox list
"$PX" sandbox status --verify | tail -n 1
echo tree >"$blobs/$(id two)"
try "$PX" sandbox status --verify | sed -n '/^corrupt/,$p'
"$PX" sandbox status | grep corrupt
put two
echo '{' >"$record/manifest.json"
says "$PX" sandbox gc | sed "s,$TMP,TMP,"
try "$PX" sandbox list | sed "s,$TMP,TMP,"
ls "$blobs" | wc -l
"$PX" sandbox clean --dry-run
"$PX" sandbox delete "$(basename "$record" | cut -c 1-12)"
"$PX" sandbox gc | tail -n 1
ls "$blobs" | wc -l
"$PX" sandbox clean >/dev/null
"$PX" sandbox status | grep corrupt
