# Options stand before or behind the names, those of px itself also before the verb; `--x y` is `--x=y`, and `--` ends them.
need jq
export PX_HOME=$TMP/home
mkdir -m 700 "$PX_HOME"
trap '"$PX" box stop --all' EXIT
"$PX" box start --name=w
"$PX" box exec -e A=1 w -- sh -c 'echo $A'
"$PX" box exec w -eA=2 -- sh -c 'echo $A'
"$PX" box exec w --env=A=3 sh -c 'echo $A -d' -d
"$PX" box exec -d w -- true
"$PX" box exec w -d true
for words in '--json box list' 'box --json list' 'box list --json'; do
    # shellcheck disable=SC2086  # the words are meant to be split
    "$PX" $words | jq -r '.boxes[].name'
done
for words in 'box list --names=x' 'box logs -fx w' 'sandbox delete -- --nosuch' 'sandbox base' 'sandbox base biuld' 'task diff --confg x a' \
    'worker shell --timeout 301 w' 'worker check a b' 'mcp --root a=. true'; do
    # shellcheck disable=SC2086
    says "$PX" $words
done
