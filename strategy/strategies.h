// All strategies, and make_strategy(), which makes one by its name. They differ in where variables
// live and in what a step is; the program around them does not (strategy/base/strategy.h).
//
//   OneDeviceStrategy            one replica in this process
//   MirroredStrategy             several, with a copy of the variables each
//   MeshStrategy                 the same, each with several logical devices
//   CentralStorageStrategy       several, with the variables in one place
//   MultiWorkerMirroredStrategy  some in each of several processes, with a copy each
//   ParameterServerStrategy      variables on parameter servers, steps on workers
//   HybridStrategy               tables on parameter servers, a copy of all else on each worker
#pragma once
#include "strategy/base/average_loss.h"
#include "strategy/base/one_device_strategy.h"
#include "strategy/in_sync/central_storage_strategy.h"
#include "strategy/in_sync/mesh_strategy.h"
#include "strategy/in_sync/mirrored_strategy.h"
#include "strategy/in_sync/multi_worker_mirrored_strategy.h"
#include "strategy/make_strategy.h"
#include "strategy/servers/hybrid_strategy.h"
#include "strategy/servers/parameter_server_strategy.h"
