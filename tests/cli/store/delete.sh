# Everything with a name can be removed, by its name or its id; of several words all are followed, or none.
need jq
export PX_HOME=$TMP/home
mkdir -m 700 "$PX_HOME"
"$PX" sandbox list
id() { printf '%s' "$1" | sha256sum | cut -d' ' -f1; }
record() {          # record KINDS NAME
    mkdir -m 700 "$PX_HOME/sandbox/$1/$(id "$2")"
    echo '{"refs":{"blobs":[],"trees":[]}}' >"$PX_HOME/sandbox/$1/$(id "$2")/manifest.json"
}
name() {            # name KIND NAME RECORD
    printf '{"id":"%s","kind":"%s","name":"%s"}' "$(id "$3")" "$1" "$2" >"$PX_HOME/store/names/$(id "$1:$2")"
}
show() { "$PX" --json sandbox list | jq -c '(.bases, .images, .envs)[] | [.id[:8], (.names | sort), .gone, .readable]' | sed "s,$TMP,TMP,g" | LC_ALL=C sort; }
record images one
record images two
record bases three
record envs four
record images five
name image tag:1 one
name image tag:2 one
name image "$TMP/gone" two
name env "$TMP/gone" four
name base both three
name image both five
show
says "$PX" sandbox delete
says "$PX" sandbox delete nosuch
says "$PX" sandbox delete tag:1 nosuch
says "$PX" sandbox delete both
says "$PX" sandbox delete "$(id one | cut -c 1-7)"
"$PX" sandbox list | wc -l
"$PX" sandbox delete tag:1
"$PX" --json sandbox delete tag:2
"$PX" sandbox delete "$(id three | cut -c 1-8)"
show
"$PX" sandbox list | grep -c ' (gone)$'
"$PX" sandbox delete both "$TMP/gone" | sed "s,$TMP,TMP," | LC_ALL=C sort
"$PX" sandbox list
ls "$PX_HOME/store/names" | wc -l
record images two
name image "$TMP/gone" two
name image "$TMP/rc" two
touch "$TMP/rc"
"$PX" --json sandbox clean --dry-run | jq -c .removed | sed "s,$TMP,TMP,"
"$PX" sandbox clean | sed "s,$TMP,TMP,"
"$PX" sandbox list | sed "s,$TMP,TMP,"
