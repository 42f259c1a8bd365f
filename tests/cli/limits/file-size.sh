need jq
"$PX" --json exec --file-size 1m -c 'head -c 2m /dev/zero >/tmp/f; s=$?; stat -c %s /tmp/f; exit $s' | jq -c '[.stdout, .exit_code != 0]' || true
"$PX" --json exec --file-size 1m -- dd if=/dev/zero of=/tmp/f bs=64k count=100 | jq -c '[.status, .signal, .limits_hit[0].limit]' || true
"$PX" exec --file-size 1m -c 'head -c 1m /dev/zero >/tmp/f; stat -c %s /tmp/f'
