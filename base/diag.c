#include "base/diag.h"
