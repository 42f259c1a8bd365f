# What a box that stays cannot have is said with the reason and the way around it.
"$PX" box start --runtime crun 2>&1 || echo "exit $?"
"$PX" exec -d --runtime runc -- true 2>&1 || echo "exit $?"
"$PX" box list --names
