// Runs the rows of an image: one lane, with the instances of its flows.
//
// Function: finds the instance of a packet's flow by comparing one instance a clock, or makes one (in place of one that has
// expired, or that has been idle for longest), then runs the program of its state: preparations, conditions, the first
// row that matches, its operations.
// Latency: up to FLOWS + 2 clocks for the instance, one for each instance looked at; then 2 clocks for each word of the program, more for what is sent or delivered: a byte
// delivered takes 1 clock, a frame waits for the sender.
// Throughput: one event at a time.
// Interface: `event_valid` with the packet's data holds until `event_done`. The tables are written by `write_*` while no event
// is there; `weft_pkg` has their addresses. `frame_*` goes to the sender. `m_axis_host_tuser` says what a beat is: HOST_NOTICE: number
// `tid`, value `tdata`; HOST_BYTE: a byte delivered, with `tlast` at the last one of a delivery.
// Words of the bus are 64 bits; tables use fewer.
/* verilator lint_off UNUSEDSIGNAL */
module rule_engine
    import weft_pkg::*;
#(
    parameter int FLOWS = BUILT_FLOWS,
    parameter int WORDS = 256
) (
    input  logic                     clk,
    input  logic                     rst,
    input  logic                     write_valid,
    input  logic [15:0]              write_address,
    input  logic [63:0]              write_data,
    input  logic                     event_valid,
    output logic                     event_done,
    input  logic [511:0]             header,
    input  logic [15:0]              frame_length,
    input  logic [15:0]              datagram_end,
    input  logic [63:0]              event_time,
    output logic [$clog2(WORDS)-1:0] read_word,
    input  logic [63:0]              read_data,
    output logic                     frame_valid,
    input  logic                     frame_ready,
    output logic [511:0]             frame,
    output logic [6:0]               frame_bytes,
    output logic [63:0]              m_axis_host_tdata,
    output logic [15:0]              m_axis_host_tid,
    output logic [7:0]               m_axis_host_tuser,
    output logic                     m_axis_host_tvalid,
    input  logic                     m_axis_host_tready,
    output logic                     m_axis_host_tlast,
    output logic                     dispatched
);
    localparam int FLOW_BITS = $clog2(FLOWS);
    typedef enum logic [2:0] {IDLE, SCAN, LOAD, FETCH, EXECUTE, DELIVER, FINISH} state_t;

    // What the image has.
    logic [63:0] code_operation[BUILT_WORDS], code_left[BUILT_WORDS], code_right[BUILT_WORDS];
    logic [63:0] entry[BUILT_STATES];
    logic [63:0] initial_value[BUILT_REGISTERS], register_mask[BUILT_REGISTERS];
    logic [63:0] field[BUILT_FIELDS];
    logic [63:0] template_word[8 * BUILT_TEMPLATES];
    logic [63:0] template_length[BUILT_TEMPLATES];
    logic [63:0] payload_start, expiry, flows_limit;

    // The instances: key, the packet that made them (Ethernet, addresses, ports), registers.
    logic [95:0] key_memory[FLOWS];
    logic [191:0] maker_memory[FLOWS];
    logic [64 * BUILT_REGISTERS - 1:0] register_memory[FLOWS];
    logic [15:0] state_memory[FLOWS];
    logic [63:0] last_memory[FLOWS], serial_memory[FLOWS];
    logic [FLOWS-1:0] used;
    logic [63:0] serial;

    state_t step;
    logic [FLOW_BITS-1:0] flow, free_flow, oldest_flow;
    logic [FLOW_BITS:0] scan;
    logic free_found;
    logic [63:0] oldest_serial;
    logic [63:0] registers[BUILT_REGISTERS];
    logic [15:0] machine_state;
    logic [191:0] maker;
    logic [CODE_BITS-1:0] counter;
    logic [63:0] operation, left_constant, right_constant, conditions;
    logic [511:0] work;
    logic [15:0] work_length;
    logic [15:0] byte_place, byte_end;

    // The key: the smaller end first.
    logic [47:0] source, destination;
    logic [95:0] key;
    assign source = {header[511 - 208 -: 32], header[511 - 272 -: 16]};
    assign destination = {header[511 - 240 -: 32], header[511 - 288 -: 16]};
    assign key = source <= destination ? {source, destination} : {destination, source};

    logic [FLOW_BITS-1:0] scanned;
    logic scanned_expired;
    assign scanned = scan[FLOW_BITS-1:0];
    assign scanned_expired = expiry != 64'h0 && event_time - last_memory[scanned] > expiry;

    logic [15:0] payload_place, payload_length;
    assign payload_place = payload_start[15:0] <= datagram_end ? payload_start[15:0] : 16'd42;
    assign payload_length = datagram_end - payload_place;

    // Operands.
    logic [63:0] left, right;
    function automatic logic field_there(input logic [63:0] description, input logic [15:0] length);
        return {8'h0, description[23:16]} <= length;
    endfunction
    function automatic logic [63:0] field_value(input logic [511:0] bytes, input logic [63:0] description);
        logic [511:0] shifted;
        shifted = bytes << description[8:0];
        return shifted[511:448] >> (7'd64 - description[30:24]);
    endfunction
    function automatic logic [63:0] read(
        input logic [3:0] kind, input logic [9:0] index, input logic [63:0] constant_value
    );
        logic [63:0] description;
        description = field[index[FIELD_BITS-1:0]];
        case (kind)
            OPERAND_REGISTER: return registers[index[REGISTER_BITS-1:0]];
            OPERAND_CONSTANT: return constant_value;
            OPERAND_FIELD_CURRENT:
                return field_there(description, datagram_end) ? field_value(header, description) : 64'h0;
            OPERAND_FIELD_WORK:
                return field_there(description, work_length) ? field_value(work, description) : 64'h0;
            OPERAND_PRESENT_CURRENT: return {63'h0, field_there(description, datagram_end)};
            OPERAND_PRESENT_WORK: return {63'h0, field_there(description, work_length)};
            OPERAND_EVENT: case (index[1:0])
                2'd0: return 64'd1;
                2'd1: return 64'(frame_length);
                2'd2: return {48'h0, payload_length};
                default: return 64'h0;
            endcase
            OPERAND_NOW: return event_time;
            default: return 64'h0;
        endcase
    endfunction
    always_comb begin
        left = read(operation[35:32], operation[49:40], left_constant);
        right = read(operation[39:36], operation[59:50], right_constant);
    end

    // Results.
    logic [63:0] result;
    logic [31:0] distance;
    logic too_far;
    assign distance = left[31:0] - right[31:0];
    assign too_far = right > 64'd63;
    logic [31:0] back;
    assign back = right[31:0] - left[31:0];
    always_comb begin
        case (operation[15:8])
            ALU_ADD: result = left + right;
            ALU_SUB: result = left - right;
            ALU_MIN: result = $signed(left) < $signed(right) ? left : right;
            ALU_MAX: result = $signed(left) > $signed(right) ? left : right;
            ALU_MIN_UNSIGNED: result = left < right ? left : right;
            ALU_MAX_UNSIGNED: result = left > right ? left : right;
            ALU_SEQ_MIN: result = $signed(distance) <= 0 ? left : right;
            ALU_SEQ_MAX: result = $signed(distance) <= 0 ? right : left;
            ALU_SEQ_DISTANCE: result = {{32{distance[31]}}, distance};
            ALU_AND: result = left & right;
            ALU_OR: result = left | right;
            ALU_XOR: result = left ^ right;
            ALU_SHL: result = too_far ? 64'h0 : left << right[5:0];
            ALU_SHR: result = too_far ? 64'h0 : left >> right[5:0];
            ALU_SHR_SIGNED: result = $unsigned($signed(left) >>> (too_far ? 6'd63 : right[5:0]));
            ALU_EQ: result = {63'h0, left == right};
            ALU_NE: result = {63'h0, left != right};
            ALU_LT: result = {63'h0, $signed(left) < $signed(right)};
            ALU_LE: result = {63'h0, $signed(left) <= $signed(right)};
            ALU_GT: result = {63'h0, $signed(left) > $signed(right)};
            ALU_GE: result = {63'h0, $signed(left) >= $signed(right)};
            ALU_LT_UNSIGNED: result = {63'h0, left < right};
            ALU_LE_UNSIGNED: result = {63'h0, left <= right};
            ALU_GT_UNSIGNED: result = {63'h0, left > right};
            ALU_GE_UNSIGNED: result = {63'h0, left >= right};
            ALU_SEQ_LT: result = {63'h0, $signed(distance) < 0};
            ALU_SEQ_LE: result = {63'h0, $signed(distance) <= 0};
            ALU_SEQ_GT: result = {63'h0, $signed(back) < 0};
            ALU_SEQ_GE: result = {63'h0, $signed(back) <= 0};
            default: result = 64'h0;
        endcase
    end

    // What each operation needs.
    logic [15:0] target;
    logic [7:0] opcode;
    logic [63:0] mask, target_field;
    logic [511:0] write_mask, write_value;
    assign opcode = operation[7:0];
    assign target = operation[31:16];
    assign mask = register_mask[target[REGISTER_BITS-1:0]];
    assign target_field = field[target[FIELD_BITS-1:0]];
    always_comb begin
        logic [63:0] bits;
        bits = 64'hffff_ffff_ffff_ffff << (7'd64 - target_field[30:24]);
        write_mask = {bits, 448'h0} >> target_field[8:0];
        write_value = {right << (7'd64 - target_field[30:24]), 448'h0} >> target_field[8:0];
    end

    // The part of the payload that a delivery covers.
    logic [15:0] first, count, payload_left;
    assign payload_left = payload_length - first;
    assign first = $signed(left) < 0 ? 16'h0 : (left > 64'(payload_length) ? payload_length : left[15:0]);
    assign count = $signed(right) < 0 ? 16'h0
        : (right > 64'(payload_left) ? payload_left : right[15:0]);

    logic send_now, notify_now;
    assign send_now = step == EXECUTE && opcode == OPCODE_SEND && work_length != 16'h0 && right == 64'd1;
    assign notify_now = step == EXECUTE && opcode == OPCODE_NOTIFY;
    assign frame_valid = send_now;
    assign frame = work;
    assign frame_bytes = work_length[6:0];
    assign read_word = byte_place[$clog2(WORDS)+2:3];
    assign m_axis_host_tvalid = notify_now || step == DELIVER;
    assign m_axis_host_tuser = step == DELIVER ? HOST_BYTE : HOST_NOTICE;
    assign m_axis_host_tid = step == DELIVER ? 16'h0 : target;
    assign m_axis_host_tdata = step == DELIVER ? {56'h0, read_data[63 - 8 * 32'(byte_place[2:0]) -: 8]} : right;
    assign m_axis_host_tlast = step == DELIVER ? byte_place + 16'd1 == byte_end : 1'b1;
    assign event_done = step == FINISH;
    assign dispatched = step == LOAD;

    always_ff @(posedge clk) begin
        case (step)
            IDLE: if (event_valid) begin
                step <= SCAN;
                scan <= '0;
                free_found <= 1'b0;
                oldest_serial <= 64'hffff_ffff_ffff_ffff;
            end
            SCAN: begin
                scan <= scan + 1'b1;
                if (used[scanned] && !scanned_expired && key_memory[scanned] == key) begin
                    flow <= scanned;
                    step <= LOAD;
                    for (int i = 0; i < BUILT_REGISTERS; i++) registers[i] <= register_memory[scanned][64 * i +: 64];
                    machine_state <= state_memory[scanned];
                    maker <= maker_memory[scanned];
                end else begin
                    if ((!used[scanned] || scanned_expired) && !free_found) begin
                        free_found <= 1'b1;
                        free_flow <= scanned;
                    end
                    if (serial_memory[scanned] < oldest_serial) begin
                        oldest_serial <= serial_memory[scanned];
                        oldest_flow <= scanned;
                    end
                    // Places are used in order, so behind one that never was there are no others.
                    if (!used[scanned] || 64'(scan) >= flows_limit - 64'd1) begin
                        // The last one is judged in the clock in which the choice is made.
                        flow <= free_found ? free_flow
                            : (!used[scanned] || scanned_expired || serial_memory[scanned] < oldest_serial) ? scanned
                            : oldest_flow;
                        step <= LOAD;
                        for (int i = 0; i < BUILT_REGISTERS; i++) registers[i] <= initial_value[i];
                        machine_state <= '0;
                        maker <= {header[511 -: 96], source, destination};
                    end
                end
            end
            LOAD: begin
                used[flow] <= 1'b1;
                key_memory[flow] <= key;
                maker_memory[flow] <= maker;
                last_memory[flow] <= event_time;
                serial_memory[flow] <= serial;
                serial <= serial + 64'd1;
                counter <= entry[machine_state[STATE_BITS-1:0]][CODE_BITS-1:0];
                conditions <= '0;
                work_length <= '0;
                work <= '0;
                step <= FETCH;
            end
            FETCH: begin
                operation <= code_operation[counter];
                left_constant <= code_left[counter];
                right_constant <= code_right[counter];
                counter <= counter + 1'b1;
                step <= EXECUTE;
            end
            EXECUTE: begin
                step <= FETCH;
                case (opcode)
                    OPCODE_COMPUTE: registers[target[REGISTER_BITS-1:0]] <=
                        mask == 64'd1 ? {63'h0, result != 64'h0} : result & mask;
                    OPCODE_CONDITION: conditions[target[5:0]] <= result[0];
                    OPCODE_ROW: if ((conditions & left_constant) != right_constant) counter <= target[CODE_BITS-1:0];
                    OPCODE_SET_FIELD:
                        if (field_there(target_field, work_length)) work <= (work & ~write_mask) | write_value;
                    OPCODE_BUILD: begin
                        for (int i = 0; i < 8; i++)
                            work[511 - 64 * i -: 64] <= template_word[{target[TEMPLATE_BITS-1:0], 3'(i)}];
                        work[511 -: 48] <= maker[143 -: 48];
                        work[511 - 48 -: 48] <= maker[191 -: 48];
                        work[511 - 208 -: 32] <= maker[47 -: 32];
                        work[511 - 240 -: 32] <= maker[95 -: 32];
                        work[511 - 272 -: 16] <= maker[15:0];
                        work[511 - 288 -: 16] <= maker[63:48];
                        work_length <= template_length[target[TEMPLATE_BITS-1:0]][15:0];
                    end
                    OPCODE_SEND: if (send_now && !frame_ready) step <= EXECUTE;
                    OPCODE_DELIVER: if (count != 16'h0) begin
                        byte_place <= payload_place + first;
                        byte_end <= payload_place + first + count;
                        step <= DELIVER;
                    end
                    OPCODE_NOTIFY: if (!m_axis_host_tready) step <= EXECUTE;
                    default: begin
                        if (target != 16'h0) machine_state <= target - 16'd1;
                        step <= FINISH;
                    end
                endcase
            end
            DELIVER: if (m_axis_host_tready) begin
                byte_place <= byte_place + 16'd1;
                if (m_axis_host_tlast) step <= FETCH;
            end
            FINISH: begin
                for (int i = 0; i < BUILT_REGISTERS; i++) register_memory[flow][64 * i +: 64] <= registers[i];
                state_memory[flow] <= machine_state;
                step <= IDLE;
            end
            default: step <= IDLE;
        endcase
        if (rst) begin
            step <= IDLE;
            used <= '0;
            serial <= '0;
        end
        if (write_valid) case (write_address[15:12])
            TABLE_OPERATION: code_operation[write_address[CODE_BITS-1:0]] <= write_data;
            TABLE_LEFT: code_left[write_address[CODE_BITS-1:0]] <= write_data;
            TABLE_RIGHT: code_right[write_address[CODE_BITS-1:0]] <= write_data;
            TABLE_ENTRY: entry[write_address[STATE_BITS-1:0]] <= write_data;
            TABLE_INITIAL: initial_value[write_address[REGISTER_BITS-1:0]] <= write_data;
            TABLE_MASK: register_mask[write_address[REGISTER_BITS-1:0]] <= write_data;
            TABLE_FIELD: field[write_address[FIELD_BITS-1:0]] <= write_data;
            TABLE_TEMPLATE: template_word[write_address[TEMPLATE_BITS+2:0]] <= write_data;
            TABLE_TEMPLATE_LENGTH: template_length[write_address[TEMPLATE_BITS-1:0]] <= write_data;
            TABLE_LIMITS: case (write_address[1:0])
                2'd0: payload_start <= write_data;
                2'd1: expiry <= write_data;
                default: flows_limit <= write_data;
            endcase
            default: ;
        endcase
    end
endmodule
