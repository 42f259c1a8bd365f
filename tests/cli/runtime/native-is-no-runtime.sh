"$PX" --json exec --runtime native -- true | jq -r .isolation.tier
