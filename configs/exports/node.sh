#!/usr/bin/env bash
# @HEADER@

set -euo pipefail
: "${HEAD_ADDRESS:?the address of machine 0 in the network between the machines}"
: "${OWN_ADDRESS:?the address of this machine in the same network}"
export VLLM_HOST_IP="$OWN_ADDRESS"
# @ENVIRONMENT@
# @PUT_GATE@
exec @COMMAND@
