"""From a training result to a model that any engine loads: merged, sharded SafeTensors, looked at before it is handed on."""
