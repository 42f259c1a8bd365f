# A preset is the ground, wherever it stands; options lie on top.
"$PX" policy show --hostname mine --preset worker | jq -r '.preset, .hostname, .pids'
"$PX" policy show --preset=worker --pids 7 | jq -r '.preset, .pids'
