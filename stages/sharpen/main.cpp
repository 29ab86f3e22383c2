#include "stages/sharpen/sharpen.hpp"

int main(int argc, char** argv) { return carousel::stages::stage_main<carousel::stages::sharpen>(argc, argv); }
