// All strategies, and make_strategy(), which makes one by its name. They differ in where variables
// live and in what a step is; the program around them does not (coordinator/strategy.h).
//
//   OneDeviceStrategy            one replica in this process
//   MirroredStrategy             several, with a copy of the variables each
//   MeshStrategy                 the same, each with several logical devices
//   CentralStorageStrategy       several, with the variables in one place
//   MultiWorkerMirroredStrategy  some in each of several processes, with a copy each
//   ParameterServerStrategy      variables on parameter servers, steps on workers
//   HybridStrategy               tables on parameter servers, a copy of all else on each worker
#pragma once
#include "coordinator/average_loss.h"
#include "coordinator/central_storage_strategy.h"
#include "coordinator/hybrid_strategy.h"
#include "coordinator/make_strategy.h"
#include "coordinator/mesh_strategy.h"
#include "coordinator/mirrored_strategy.h"
#include "coordinator/multi_worker_mirrored_strategy.h"
#include "coordinator/one_device_strategy.h"
#include "coordinator/parameter_server_strategy.h"
