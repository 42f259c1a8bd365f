# A busy loop gets about half a core: two seconds of work in no less than three.
as_root
need jq
"$PX" --json exec --cpus 0.5 --timeout 4s -c 'while :; do :; done' | jq '(.cpu_user_s + .cpu_sys_s) as $cpu | $cpu > 0.5 and $cpu < 3'
