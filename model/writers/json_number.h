// Numbers in JSON, which has none for what is not finite: "nan", "inf" and "-inf" are texts there.
//   Thread  any.
#pragma once
#include "core/base/json.h"

namespace cairn {

Json number_json(double value);
//   Errors  Json::exception: neither a number nor a text.
double number_of(const Json& value);

}  // namespace cairn
