# A limit of a box that stays is told by the command that met it, as px exec tells it.
need jq
trap '"$PX" box stop --all >/dev/null' EXIT
ask() { "$PX" --json box exec "$@" | jq -c '[.status, .exit_code, (.limits_hit[] | .limit, .counter)]' || true; }
"$PX" box start --name memory --tmpfs /x:size=1m >/dev/null
ask memory -c 'head -c 2m /dev/zero >/x/f'
ask memory -c 'exit 1'
ask memory -c 'rm /x/f'
ask memory -c 'head -c 2m /dev/zero >/x/f; exit 0'
"$PX" box start --name together --disk 2m >/dev/null
ask together -c 'head -c 3m /dev/zero >/tmp/f'
# A writable bind is watched, and the whole box ended: the command that ran says why.
mkdir "$TMP/ws" && chmod 777 "$TMP/ws"
"$PX" box start --name bind --disk 2m --work-dir "$TMP/ws" >/dev/null
ask bind -c 'head -c 4m /dev/zero >a; sleep 50'
