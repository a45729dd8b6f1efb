-- SPDX-License-Identifier: BSD-3-Clause
-- Shows what became of each packet of a recording with packet ids (`ringtap record --ids`): when it was sent, how
-- much later, and in which frame. Records of one packet have the same id. A packet is received before it is sent: of
-- received packets the later frames are known once the whole file has been read, in Wireshark after loading it, in
-- tshark with -2 and a filter (-Y ringtap): without one its first pass reads no fields.
--
-- Fates that a recording has (`ringtap record --fates`) are in blocks that Wireshark skips: a plugin never sees them.
-- `ringtap explain --annotate` makes comments of them, which are read here.
--
-- Shows also what mbufs told of packets (`ringtap record --metadata`), and marks checksums that Wireshark finds bad
-- although the packet was captured before its NIC computed them.

local ringtap = Proto("ringtap", "ringtap")

local fate_values = {[1] = "sent", [2] = "not sent in this file", [3] = "made by the application",
	[4] = "not received in this file", [5] = "not offered", [6] = "open at the end of the recording",
	[7] = "unknown; likely offered", [8] = "unknown"}
local SENT, NOT_SENT, MADE, UNKNOWN = 1, 2, 3, 4
local NOT_OFFERED = 5 -- the first of those that comments have

local checksum_values = {[0] = "unknown", [1] = "bad", [2] = "good", [3] = "not in the packet, data valid"}

-- Names of RTE_PTYPE_…, by their place in a packet type: the lowest bit, and the values there.
local type_names = {
	{0, {"ETHER", "ETHER_TIMESYNC", "ETHER_ARP", "ETHER_LLDP", "ETHER_NSH", "ETHER_VLAN", "ETHER_QINQ",
		"ETHER_PPPOE", "ETHER_FCOE", "ETHER_MPLS"}},
	{4, {"IPV4", [3] = "IPV4_EXT", [4] = "IPV6", [9] = "IPV4_EXT_UNKNOWN", [12] = "IPV6_EXT",
		[14] = "IPV6_EXT_UNKNOWN"}},
	{8, {"TCP", "UDP", "FRAG", "SCTP", "ICMP", "NONFRAG", "IGMP"}},
	{12, {"IP", "GRE", "VXLAN", "NVGRE", "GENEVE", "GRENAT", "GTPC", "GTPU", "ESP", "L2TP", "VXLAN_GPE",
		"MPLS_IN_GRE", "MPLS_IN_UDP"}, "TUNNEL_"},
	{16, {"ETHER", "ETHER_VLAN", "ETHER_QINQ"}, "INNER_"},
	{20, {"IPV4", "IPV4_EXT", "IPV6", "IPV4_EXT_UNKNOWN", "IPV6_EXT", "IPV6_EXT_UNKNOWN"}, "INNER_"},
	{24, {"TCP", "UDP", "FRAG", "SCTP", "ICMP", "NONFRAG"}, "INNER_"},
}

local fields = {
	fate = ProtoField.uint8("ringtap.fate", "Fate", base.DEC, fate_values),
	latency = ProtoField.relative_time("ringtap.latency", "Latency", "From receiving to sending this packet"),
	peer = ProtoField.framenum("ringtap.peer", "Peer frame", base.NONE, frametype.NONE, 0,
		"The packet as it was sent, or received"),
	times = ProtoField.uint32("ringtap.times", "Number of sendings", base.DEC),
	copy = ProtoField.uint32("ringtap.copy", "Copy", base.DEC, nil, nil,
		"0: the first sending of the packet, 1: the second, …"),
	noticed = ProtoField.relative_time("ringtap.noticed", "Noticed",
		"From receiving until it was noticed that the packet was not offered"),
	reason = ProtoField.string("ringtap.reason", "Reason", base.ASCII,
		"Why the application did not send the packet, as it said"),
	not_ready = ProtoField.bool("ringtap.checksum.not_ready", "Checksum not ready", base.NONE, nil, 0,
		"Left to be computed by a NIC"),
	valid = ProtoField.bool("ringtap.checksum.valid", "Checksum found valid by the NIC"),
	not_bad = ProtoField.bool("ringtap.checksum.not_bad", "Checksum shown as bad, but not ready", base.NONE, nil, 0,
		"The packet was captured before its NIC computed it"),
	segmented = ProtoField.bool("ringtap.segmented", "Segmentation by the NIC"),
	ip = ProtoField.uint8("ringtap.checksum.ip", "IP checksum by the NIC", base.DEC, checksum_values),
	l4 = ProtoField.uint8("ringtap.checksum.l4", "Transport checksum by the NIC", base.DEC, checksum_values),
	outer_ip = ProtoField.uint8("ringtap.checksum.outer_ip", "Outer IP checksum by the NIC", base.DEC,
		checksum_values),
	outer_l4 = ProtoField.uint8("ringtap.checksum.outer_l4", "Outer transport checksum by the NIC", base.DEC,
		checksum_values),
	flagged = ProtoField.bool("ringtap.flagged", "Flagged by a flow rule"),
	mark = ProtoField.uint32("ringtap.mark", "Mark of a flow rule", base.DEC),
	packet_type = ProtoField.string("ringtap.packet_type", "Packet type", base.ASCII, "rte_mbuf.packet_type"),
}
do
	local list = {}

	for _, field in pairs(fields) do
		list[#list + 1] = field
	end
	ringtap.fields = list
end
local not_bad = ProtoExpert.new("ringtap.checksum.not_bad.expert",
	"The checksum need not be bad: the packet was captured before the NIC computed one or more of its checksums", expert.group.CHECKSUM,
	expert.severity.NOTE)
ringtap.experts = {not_bad}

local get_id = Field.new("frame.packet_id")
local get_direction = Field.new("frame.packet_flags_direction")
local get_description = Field.new("frame.interface_description")
local get_time = Field.new("frame.time_epoch")
local get_comment = Field.new("frame.comment")
local get_flags = Field.new("frame.packet_flags")
local get_verdict = Field.new("frame.verdict.hw")
local checksum_states = {Field.new("ip.checksum.status"), Field.new("tcp.checksum.status"),
	Field.new("udp.checksum.status"), Field.new("sctp.checksum.status")}

local RECEIVED, SENDING = 1, 2 -- epb_flags

local applications, application_count -- ids are those of an application
local open                            -- by application and id: the packet that was received last
local frames                          -- by frame number: {packet, copy}; copy is nil for the received one
local any                             -- whether the file has ids
local noted                           -- whether there was a first pass that read fields

function ringtap.init()
	applications, application_count = {}, 0
	open, frames = {}, {}
	any, noted = false, false
end

-- Ports with a description of the user's name no application: they are taken for ports of the first one.
local function application()
	local description = get_description()
	local name = description and tostring(description.value):match(" of DPDK application ([^,]+)")

	if not name then
		return 0
	end
	if not applications[name] then
		applications[name] = application_count
		application_count = application_count + 1
	end
	return applications[name]
end

-- On the first pass that reads fields, in the order of the file.
local function note(frame, id, direction)
	local key = application() .. " " .. id
	local packet = open[key]

	if frames[frame] then
		return
	end
	if direction == RECEIVED then
		packet = {frame = frame, time = get_time().value, sent = {}}
		open[key] = packet
		frames[frame] = {packet = packet}
	elseif packet then
		packet.sent[#packet.sent + 1] = {frame = frame, latency = get_time().value - packet.time}
		frames[frame] = {packet = packet, copy = #packet.sent}
	end
end

-- The fate in the comments of this frame, its reason or nil, and until when it was not known; nil: there is none.
local function noted_fate()
	for _, comment in ipairs({get_comment()}) do
		local text = tostring(comment.value):match("^ringtap: (.*)")

		for fate = NOT_OFFERED, #fate_values do
			if text and text:sub(1, #fate_values[fate]) == fate_values[fate] then
				return fate, text:match("; reason: (.*)$"), text:match("noticed (%d+)%.(%d+) s")
			end
		end
	end
end

local function show_fate(tree, fate, reason, seconds, ns)
	tree:add(fields.fate, fate):set_generated()
	if reason then
		tree:add(fields.reason, reason):set_generated()
	end
	if seconds then
		tree:add(fields.noticed, NSTime.new(tonumber(seconds), tonumber(ns))):set_generated()
	end
	tree:append_text(": " .. fate_values[fate])
end

local function show_received(packet, tree, complete)
	local first = packet.sent[1]
	local fate, reason, seconds, ns = noted_fate()

	if fate then
		show_fate(tree, fate, reason, seconds, ns)
		if first then
			tree:add(fields.latency, first.latency):set_generated()
			tree:add(fields.times, #packet.sent):set_generated()
		end
	elseif first then
		tree:add(fields.fate, SENT):set_generated()
		tree:add(fields.latency, first.latency):set_generated()
		tree:add(fields.times, #packet.sent):set_generated()
		tree:append_text(": sent in frame " .. first.frame)
	elseif complete then
		tree:add(fields.fate, NOT_SENT):set_generated()
		tree:append_text(": not sent in this file")
	end
	for _, sending in ipairs(packet.sent) do
		tree:add(fields.peer, sending.frame):set_generated()
	end
end

local function show_sent(packet, copy, tree)
	tree:add(fields.fate, SENT):set_generated()
	tree:add(fields.latency, packet.sent[copy].latency):set_generated()
	tree:add(fields.peer, packet.frame):set_generated()
	tree:add(fields.copy, copy - 1):set_generated()
	tree:append_text(": received in frame " .. packet.frame)
end

local function type_name(number)
	local names = {}

	for _, place in ipairs(type_names) do
		local value = math.floor(number / 2 ^ place[1]) % 16

		if value > 0 then
			names[#names + 1] = (place[3] or "") .. (place[2][value] or value)
		end
	end
	return table.concat(names, " ")
end

-- Whether Wireshark has found a checksum of this frame bad (0).
local function has_bad_checksum()
	for _, get in ipairs(checksum_states) do
		for _, state in ipairs({get()}) do
			if state.value == 0 then
				return true
			end
		end
	end
end

-- docs/format.md has the bytes of the verdict. Wireshark leaves out the first of them.
local function show_verdict(tree, bytes)
	local function number(at)
		local sum = 0

		for i = at + 3, at, -1 do
			sum = sum * 256 + bytes:get_index(i)
		end
		return sum
	end
	local states = {{fields.ip, 1}, {fields.l4, 2}, {fields.outer_ip, 3}, {fields.outer_l4, 4}}

	for _, state in ipairs(states) do
		if bytes:get_index(state[2]) > 0 then
			tree:add(state[1], bytes:get_index(state[2])):set_generated()
		end
	end
	if bytes:get_index(5) == 1 then
		tree:add(fields.mark, number(7)):set_generated()
	elseif bytes:get_index(5) == 2 then
		tree:add(fields.flagged, true):set_generated()
	end
	if number(11) > 0 then
		tree:add(fields.packet_type, type_name(number(11))):set_generated()
	end
end

local NOT_READY, VALID, SEGMENTED = 9, 10, 11 -- bits of epb_flags

local function show_mbuf(root)
	local flags, verdict = get_flags(), get_verdict()
	local tree

	local function has(bit)
		return flags and math.floor(flags.value / 2 ^ bit) % 2 == 1
	end
	local function add(field)
		tree = tree or root:add(ringtap)
		tree:add(field, true):set_generated()
	end
	if has(NOT_READY) then
		add(fields.not_ready)
		if has_bad_checksum() then
			add(fields.not_bad)
			tree:add_proto_expert_info(not_bad)
		end
	end
	if has(VALID) then
		add(fields.valid)
	end
	if has(SEGMENTED) then
		add(fields.segmented)
	end
	if verdict and verdict.value:len() == 15 and verdict.value:get_index(0) == 1 then
		tree = tree or root:add(ringtap)
		show_verdict(tree, verdict.value)
	end
	return tree
end

function ringtap.dissector(buffer, pinfo, root)
	local tree = show_mbuf(root)
	local id, direction = get_id(), get_direction()
	local way = direction and direction.value
	local about

	if not id and not any or way ~= RECEIVED and way ~= SENDING then
		return
	end
	any = true
	noted = noted or not pinfo.visited
	if id and not (pinfo.visited and noted) then
		note(pinfo.number, tostring(id.value), way)
	end
	about = frames[pinfo.number]
	if about and about.copy then
		show_sent(about.packet, about.copy, tree or root:add(ringtap))
	elseif about then
		show_received(about.packet, tree or root:add(ringtap), pinfo.visited and noted)
	elseif way == SENDING then
		tree = tree or root:add(ringtap)
		tree:add(fields.fate, id and UNKNOWN or MADE):set_generated()
	end
end

register_postdissector(ringtap)
