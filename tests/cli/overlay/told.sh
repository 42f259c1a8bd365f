# The result says where the changes went, and the plan shows the steps.
need_overlay
"$PX" --json exec --rootfs "$TMP/rootfs" --overlay -c true | jq -c '[.isolation.mechanisms[] | select(startswith("overlay"))]'
"$PX" exec --rootfs "$TMP/rootfs" --overlay --plan -c true | jq -r '.steps[].op' | grep -E 'overlay|file-ids'
"$PX" exec --help | grep -cE -- '^ +--(overlay|persist|changes|apply|discard|keep)\b'
