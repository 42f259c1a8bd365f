need jq
for i in 1 2 3; do "$PX" --json exec -- true | jq -r .id; done | sort -u | grep -cE '^[0-9a-f]{16}$'
