// All that a training program needs: arrays and their operations, datasets, layers, losses, metrics
// and optimizers, every strategy with its coordinator, `Model`, and models on disk. Each header may
// be included by itself instead, which compiles faster.
//
//   #include <cairn/cairn.h>
//   using namespace cairn;
#pragma once
#include "core/graph/ops.h"
#include "core/graph/ops_arrange.h"
#include "core/graph/ops_model.h"
#include "core/graph/ops_random.h"
#include "data/dataset/dataset.h"
#include "data/dataset/dataset_iterator.h"
#include "data/file/tfrecord_writer.h"
#include "data/stage/fit.h"
#include "model/callbacks.h"
#include "model/model.h"
#include "model/saved/loaded_model.h"
#include "model/saved/saved_model.h"
#include "model/sidecar_evaluator.h"
#include "model/tensorboard.h"
#include "nn/nn.h"
#include "service/consumer/distribute.h"
#include "strategy/servers/checkpoint.h"
#include "strategy/servers/cluster_coordinator.h"
#include "strategy/strategies.h"
