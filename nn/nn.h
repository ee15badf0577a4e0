// All of nn/: what a program that defines a model includes.
//
// A program that compiles slowly may include the single headers instead; each stands alone. Nothing
// here is known to the rest of Cairn: layers, losses and optimizers are functions that record
// operations of core/graph/ops.h, so a program may write its own beside them, in the same way.
#pragma once
#include "nn/activations.h"
#include "nn/added_losses.h"
#include "nn/attention.h"
#include "nn/click_model.h"
#include "nn/clipping.h"
#include "nn/conv2d.h"
#include "nn/dense.h"
#include "nn/embedding.h"
#include "nn/gru.h"
#include "nn/initializers.h"
#include "nn/interactions.h"
#include "nn/layers.h"
#include "nn/losses.h"
#include "nn/metrics.h"
#include "nn/mmoe.h"
#include "nn/normalization.h"
#include "nn/optimizer.h"
#include "nn/regularizers.h"
#include "nn/safe_lookup.h"
#include "nn/schedule.h"
#include "nn/sequential.h"
#include "nn/shaping.h"
#include "nn/training_scope.h"
#include "nn/two_tower.h"
#include "nn/wide.h"
