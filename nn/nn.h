// All of nn/: what a program that defines a model includes.
#pragma once
#include "nn/click_model.h"
#include "nn/clipping.h"
#include "nn/dense.h"
#include "nn/embedding.h"
#include "nn/interactions.h"
#include "nn/losses.h"
#include "nn/metrics.h"
#include "nn/optimizer.h"
#include "nn/schedule.h"
#include "nn/wide.h"
